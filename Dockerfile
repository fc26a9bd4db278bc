# pip, its caches and the build backend stay in this stage.
FROM python:3.13-slim-trixie AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/cacp \
 && pip --python /opt/cacp/bin/python install --require-hashes -r requirements.lock \
 && pip install --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE cacp_launcher.py ./
COPY schemas schemas
COPY contracts contracts
COPY peers peers
COPY proof proof
COPY server server
COPY threader threader
COPY comply comply
COPY cli cli
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
 && pip --python /opt/cacp/bin/python install --no-deps dist/*.whl

FROM python:3.13-slim-trixie
COPY --from=build /opt/cacp /opt/cacp
COPY deploy/healthcheck.py /opt/cacp/healthcheck.py
RUN install --directory --mode 0700 --owner 10001 --group 10001 /data
ENV PATH=/opt/cacp/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    CACP_HOST=0.0.0.0 \
    CACP_PORT=8080 \
    CACP_DB=/data/cacp.db \
    CACP_BOOTSTRAP_KEY_FILE=/data/key
# A number, so that Kubernetes can tell that it is not root.
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=8s --start-period=30s CMD ["python", "/opt/cacp/healthcheck.py"]
ENTRYPOINT ["cacp"]
CMD ["serve"]
