# Builds the image for both architectures with BuildKit: docker buildx bake
# No emulation is needed: see the Dockerfile. scripts/image/build.sh does the same with buildah.
#
#   VERSION=0.1.0 REVISION=$(git rev-parse HEAD) SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) docker buildx bake --push
variable "IMAGE" {
  default = "ghcr.io/threadwarden/threadwarden"
}
variable "VERSION" {
  default = "unreleased"
}
variable "REVISION" {
  default = "unknown"
}
# The time of the image and of its files, in seconds since 1970.
variable "SOURCE_DATE_EPOCH" {
  default = "0"
}

group "default" {
  targets = ["image"]
}

target "image" {
  context    = "."
  dockerfile = "Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${IMAGE}:${VERSION}"]
  args = {
    VERSION           = VERSION
    REVISION          = REVISION
    SOURCE_DATE_EPOCH = SOURCE_DATE_EPOCH
  }
  labels = {
    "org.opencontainers.image.created" = timeadd("1970-01-01T00:00:00Z", "${SOURCE_DATE_EPOCH}s")
  }
  # rewrite-timestamp: files get the time above, so that two builds have one digest.
  output = ["type=image,rewrite-timestamp=true"]
}
