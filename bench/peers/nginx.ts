import { programOnPath } from '../peer-programs.ts'
import { programPeer } from '../start-program.ts'

// One process, so that its CPU is that of one pid; buffers as large as the largest answer, no log.
const config = (upstream: string, port: number, folder: string): string => `daemon off;
master_process off;
pid ${folder}/pid;
error_log /dev/null crit;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream bench { server ${new URL(upstream).host}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffers 8 32k;
    }
  }
}
`

export const peer = programPeer({
  about: 'nginx as a plain HTTP proxy in one process: it knows nothing of MCP',
  dialect: 'modern',
  program: programOnPath('nginx', 'apt-get install nginx-light'),
  args: ({ upstream, port, folder, config: write }) => ['-e', '/dev/null', '-c', write(config(upstream, port, folder))],
})
