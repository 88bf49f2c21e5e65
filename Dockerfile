# SPDX-License-Identifier: MIT
# The suite on Debian, by the steps of the README. docs/building.md has the commands that build and run it.
ARG DEBIAN=13

# Debian with the packages that building and running need
FROM debian:$DEBIAN AS packages
ARG DEBIAN
ARG CUDA=
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make g++ && rm -rf /var/lib/apt/lists/*
RUN [ -z "$CUDA" ] || { apt-get update && apt-get install -y --no-install-recommends curl && \
    curl -fsSLo /tmp/keyring.deb "https://developer.download.nvidia.com/compute/cuda/repos/debian$DEBIAN/x86_64/cuda-keyring_1.1-1_all.deb" && \
    dpkg -i /tmp/keyring.deb && apt-get update && apt-get install -y --no-install-recommends "cuda-toolkit-$CUDA" && \
    rm -rf /tmp/keyring.deb /var/lib/apt/lists/*; }
ENV PATH=$PATH:/usr/local/cuda/bin NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics
WORKDIR /cuda-by-example
# Only what lists the packages: they are installed again when one of these files changes, not when a program does.
COPY Makefile ./
COPY scripts scripts
RUN make setup && rm -rf /var/lib/apt/lists/*

# For .devcontainer: also a debugger and a language server, and a user who is not root
FROM packages AS editor
RUN apt-get update && apt-get install -y --no-install-recommends clangd gdb sudo && rm -rf /var/lib/apt/lists/* && \
    useradd --create-home --shell /bin/bash user && echo 'user ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/user

FROM packages
COPY . .
ARG CUDA=
RUN [ -n "$CUDA" ] || make
CMD ["make", "run"]
