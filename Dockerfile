# SPDX-License-Identifier: MIT
# The suite on Debian, by the steps of the README:
#   docker build -t cuda-by-example .
#   docker run --rm cuda-by-example               runs every program without a window, on the CPU (make run)
#   docker run --rm -it cuda-by-example bash      a shell, in which the programs are built
# With NVIDIA's CUDA toolkit, here 13.0, and the NVIDIA Container Toolkit on the host; the programs are built when the container
# runs, because make then sees for which GPU:
#   docker build -t cuda-by-example:gpu --build-arg CUDA=13-0 .
#   docker run --rm --gpus all cuda-by-example:gpu
ARG DEBIAN=12

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
