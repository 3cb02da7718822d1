# The image of the gateway: Node and the program, no shell, no package manager, an unprivileged user.
# It runs with a read-only root file system; /data alone is written to (docs/how-to/deploy/container.md).
# scripts/container-check.sh builds it and shows that this is so.
#
#   docker build -t threadwarden .
#   docker build -t threadwarden --secret id=npmrc,src=$HOME/.npmrc .   for a private npm registry
#
# Other bases: --build-arg BUILD_IMAGE=… (Node 24, npm and a shell), --build-arg RUNTIME_IMAGE=… (Node 24 and glibc,
# in /nodejs/bin as distroless has it, or in /usr/local/bin or /usr/bin).
ARG BUILD_IMAGE=docker.io/library/node:24-trixie-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

# No stage runs a program of the architecture that the image is for: dist is JavaScript, and better-sqlite3 has a binary
# for each platform in its package. So one machine builds all architectures, without emulation (docker-bake.hcl).
#
# --ignore-scripts here and below: package.json ("allowScripts") denies better-sqlite3 its install script, since the
# binaries are in the package, and allows those of `node`, which brings a Node that this image has already, and of the
# PostgreSQL of the tests only. The flag says the same to every npm, also to those that know no allowScripts.
FROM --platform=${BUILDPLATFORM} ${BUILD_IMAGE} AS packages
WORKDIR /build/gateway
COPY package.json package-lock.json ./
# Removed: sources and binaries of better-sqlite3 for other systems (half the size of all packages), and npm's own record
# of the installation, which names the registry.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --omit=dev --workspaces=false --ignore-scripts --no-audit --no-fund \
  && cd node_modules \
  && rm -rf .bin .package-lock.json better-sqlite3/deps better-sqlite3/src better-sqlite3/binding.gyp \
  && find better-sqlite3/prebuilds -type f ! -name 'linux-*' -delete \
  && chmod -R a+rX,go-w .

# The compiler and the types are in a folder above, where Node and TypeScript find them too.
FROM packages AS build
COPY scripts/image/package.json scripts/image/package-lock.json /build/
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
  npm ci --prefix /build --omit=optional --ignore-scripts --no-audit --no-fund
COPY . .
ARG SOURCE_DATE_EPOCH
# What goes into the image, readable for everybody whatever the umask of the checkout was; and the empty /data.
RUN npm run build \
  && mkdir -p /out/app /out/data \
  && cp -r dist policies config package.json LICENSE /out/app/ \
  && node scripts/image/sbom.ts --out /out/app/sbom.cdx.json \
  && chmod -R a+rX,go-w /out

# The platform is the default one; buildah 1.28 would take that of the stages above.
FROM --platform=${TARGETPLATFORM} ${RUNTIME_IMAGE}
ARG RUNTIME_IMAGE
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="threadwarden" \
  org.opencontainers.image.description="An authorization gateway for agent chat runtimes: every conversation thread belongs to somebody." \
  org.opencontainers.image.url="https://github.com/threadwarden/threadwarden" \
  org.opencontainers.image.source="https://github.com/threadwarden/threadwarden" \
  org.opencontainers.image.documentation="https://github.com/threadwarden/threadwarden/tree/main/docs" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
# THREADWARDEN_CONFIG: for serve, and for commands that run in the container.
# THREADWARDEN_DATA: where the store and the audit file are, unless the configuration says otherwise.
# NODE_OPTIONS: in a container of 512 MiB or less Node leaves new objects 1 MiB, and a request costs three times the CPU.
# SQLITE_TMPDIR: SQLite writes large sorts and VACUUM to temporary files, and /tmp is read-only too.
ENV PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin \
  NODE_ENV=production \
  NODE_OPTIONS=--max-semi-space-size=16 \
  THREADWARDEN_CONFIG=/etc/threadwarden/threadwarden.yaml \
  THREADWARDEN_DATA=/data \
  SQLITE_TMPDIR=/data
# WORKDIR comes after the files: it would make /app the property of the user that the base image is set to.
COPY --from=packages /build/gateway/node_modules /app/node_modules
COPY --from=build /out/app /app
WORKDIR /app
# A new volume takes over owner and mode of what it covers, so it is writable for the user below. No VOLUME: a container
# that was started without a volume would get an empty one of its own, and lose the owners of all threads with it.
COPY --from=build --chown=65532:65532 /out/data /data
EXPOSE 8080 8081
# By number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 65532:65532
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["serve"]
# Not "ready": an unreachable upstream is no reason to restart the gateway.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["node", "/app/dist/cli.js", "health", "--probe", "live"]
