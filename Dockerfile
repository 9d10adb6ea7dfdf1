# syntax=docker/dockerfile:1
FROM node:22-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY schema schema
COPY src src
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-slim
ENV NODE_ENV=production DRAGOMAN_DATA=/data
COPY --from=build /src/package.json /app/
COPY --from=build /src/node_modules /app/node_modules
COPY --from=build /src/schema /app/schema
COPY --from=build /src/dist /app/dist
RUN chmod +x /app/dist/main.js \
  && ln -s /app/dist/main.js /usr/local/bin/dragoman \
  && mkdir -p /data /etc/dragoman \
  && chown node:node /data
USER node
# The gateway reads dragoman.json here.
WORKDIR /etc/dragoman
VOLUME /data
EXPOSE 8765 8766
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8765/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["dragoman"]
CMD ["serve", "--host", "0.0.0.0"]
