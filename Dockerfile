# Two images of the command `orbweaver`: the target `plain`, and `chromium` with a browser for --render.
# docs/container.md describes how to run them. BASE_DIGEST pins the base (`@sha256:…`): `make image` fills it in.
ARG BASE_IMAGE=python:3.13-slim-trixie
ARG BASE_DIGEST=
FROM ${BASE_IMAGE}${BASE_DIGEST} AS base

FROM base AS build
WORKDIR /build
COPY requirements requirements
# The environment of the image has no pip: the one that builds the wheel installs into it.
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && python3 -m venv --without-pip /opt/orbweaver \
    && /opt/build/bin/pip --python /opt/orbweaver install --no-cache-dir --only-binary :all: \
        --require-hashes -r requirements/image.txt
COPY . .
RUN /opt/build/bin/python -m hatchling build -t wheel \
    && /opt/build/bin/pip --python /opt/orbweaver install --no-deps --no-index dist/*.whl

FROM base AS runtime
RUN groupadd --gid 10001 orbweaver \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin orbweaver \
    && install -d -o orbweaver -g orbweaver -m 0750 /data
COPY --from=build /opt/orbweaver /opt/orbweaver
ENV PATH=/opt/orbweaver/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /data
VOLUME /data
EXPOSE 8787
ENTRYPOINT ["orbweaver"]
CMD ["--help"]

FROM runtime AS chromium
# The base image is pinned, but Debian keeps only the newest version of a package.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium-headless-shell \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001

FROM runtime AS plain
USER 10001:10001
