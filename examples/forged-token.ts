/** A token that the issuer did not sign. */
import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose'

/** The claims and the key id of a token, signed with another key. */
export async function forgedToken(token: string): Promise<string> {
  const { privateKey } = await generateKeyPair('RS256')
  return new SignJWT(decodeJwt(token)).setProtectedHeader({ alg: 'RS256', ...decodeProtectedHeader(token) }).sign(privateKey)
}
