/**
 * Fits the fuzzer's addon to a C library before glibc 2.38, as of Debian 12. Its prebuilt file was linked on a newer system, and
 * asks for newer versions of three symbols, of which the older library has what is needed (ELF: gABI ch. 4; LSB §10.7).
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Versions that glibc and libstdc++ before 2023 don't have. */
const NEWER = ['GLIBC_2.38', 'GLIBCXX_3.4.32']
/** `strtol` under the name that it has in C23; without it, the rest of the name is that of the older one. */
const C23 = '__isoc23_'

const [SHT_DYNSYM, SHT_VERNEED, SHT_VERSYM] = [11, 0x6ffffffe, 0x6fffffff]
const VER_FLG_WEAK = 2
const VER_NDX_GLOBAL = 1
const STB_WEAK = 2

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  /** The section that this one's names stand in. */
  readonly link: number
}

/** Changes a shared library in its place; one that asks for none of these versions stays as it is. */
export function fitToOldLibc(file: string): void {
  const bytes = readFileSync(file)
  const sections = sectionsOf(bytes)
  const ofType = (type: number): Section => {
    const found = sections.find((section) => section.type === type)
    if (found === undefined) throw new Error(`${file} has no section of type ${type}`)
    return found
  }
  const [symbols, needs, versions] = [ofType(SHT_DYNSYM), ofType(SHT_VERNEED), ofType(SHT_VERSYM)]
  const names = sections[symbols.link]?.offset ?? 0
  const nameAt = (at: number): string => bytes.toString('latin1', names + at, bytes.indexOf(0, names + at))

  const waived = new Set<number>()
  for (const entry of chainFrom(bytes, needs.offset, 8, 12)) {
    if (!NEWER.includes(nameAt(bytes.readUInt32LE(entry + 8)))) continue
    // The loader only warns of a weak version that it does not find.
    bytes.writeUInt16LE(bytes.readUInt16LE(entry + 4) | VER_FLG_WEAK, entry + 4)
    waived.add(bytes.readUInt16LE(entry + 6))
  }
  if (waived.size === 0) return
  for (let index = 0; index < symbols.size / 24; index += 1) {
    const version = versions.offset + 2 * index
    if (!waived.has(bytes.readUInt16LE(version))) continue
    bytes.writeUInt16LE(VER_NDX_GLOBAL, version)
    const symbol = symbols.offset + 24 * index
    const name = bytes.readUInt32LE(symbol)
    if (nameAt(name).startsWith(C23)) bytes.writeUInt32LE(name + C23.length, symbol)
    // Nothing calls the other one: it is there so that a library without it is noticed.
    else bytes.writeUInt8((STB_WEAK << 4) | (bytes.readUInt8(symbol + 4) & 0xf), symbol + 4)
  }
  // Another process may be using it.
  writeFileSync(`${file}.new`, bytes)
  renameSync(`${file}.new`, file)
}

/** The sections of a 64-bit file of little-endian numbers. */
function sectionsOf(bytes: Buffer): readonly Section[] {
  const from = Number(bytes.readBigUInt64LE(0x28))
  return Array.from({ length: bytes.readUInt16LE(0x3c) }, (_none, index) => {
    const at = from + 64 * index
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 24)),
      size: Number(bytes.readBigUInt64LE(at + 32)),
      link: bytes.readUInt32LE(at + 40),
    }
  })
}

/** Where the entries are of a list of lists: each tells how far the next one is, and 0 at the end. */
function* chainFrom(bytes: Buffer, first: number, toInner: number, toNext: number): Generator<number> {
  for (const outer of chain(bytes, first, toNext)) yield* chain(bytes, outer + bytes.readUInt32LE(outer + toInner), toNext)
}

function* chain(bytes: Buffer, first: number, toNext: number): Generator<number> {
  for (let at = first; ; at += bytes.readUInt32LE(at + toNext)) {
    yield at
    if (bytes.readUInt32LE(at + toNext) === 0) return
  }
}
