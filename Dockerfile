# Two stages: the engine is built where Rust is, and runs where it is not.
# Both images must be of the same Debian or Ubuntu release, so that they have the same Python (3.11 or later):
#   docker build --build-arg BUILD_IMAGE=… --build-arg RUNTIME_IMAGE=… -t replayer .
ARG BUILD_IMAGE=docker.io/library/rust:1-slim-bookworm
ARG RUNTIME_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_IMAGE} AS builder
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv gcc libc6-dev ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
RUN python3 -m venv /opt/replayer \
    && /opt/replayer/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN /opt/replayer/bin/pip install --no-cache-dir --no-deps .

FROM ${RUNTIME_IMAGE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 fio strace \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 replayer \
    && install -d -o replayer -g replayer /work
COPY --from=builder /opt/replayer /opt/replayer
ENV PATH=/opt/replayer/bin:${PATH}
USER replayer
WORKDIR /work
VOLUME /work
ENTRYPOINT ["replayer"]
CMD ["--help"]
