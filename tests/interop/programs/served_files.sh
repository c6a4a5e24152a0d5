#!/bin/sh
# Serves the files `small` (1 KiB) and `large` (1 MiB) in FOLDER over HTTP on HOST:PORT, by nginx or Apache, or through haproxy or
# Varnish with nginx behind.
# usage: served_files.sh nginx|apache2|haproxy|varnish FOLDER HOST PORT
set -eu
which=$1 folder=$2 host=$3 port=$4
cd "$folder"
mkdir -p files temporary
head -c 1024 /dev/urandom > files/small
head -c 1048576 /dev/urandom > files/large
chmod -R a+rX .

nginx_at() {
  cat > nginx.conf << CONF
daemon off; worker_processes 2; pid $folder/nginx.pid; error_log stderr; $([ "$(id -u)" = 0 ] && echo 'user root;')
events { worker_connections 256; }
http {
  access_log off; sendfile on; keepalive_requests 100000;
  client_body_temp_path $folder/temporary; proxy_temp_path $folder/temporary; fastcgi_temp_path $folder/temporary;
  uwsgi_temp_path $folder/temporary; scgi_temp_path $folder/temporary;
  server { listen $1; root $folder/files; }
}
CONF
}

behind_nginx() {
  nginx_at "127.0.0.1:$back"
  nginx -c "$folder/nginx.conf" &
  until curl -so /dev/null "http://127.0.0.1:$back/small"; do :; done
}

back=$(python3 -c 'import socket; one = socket.socket(); one.bind(("127.0.0.1", 0)); print(one.getsockname()[1])')
case $which in
  nginx)
    nginx_at "$host:$port"
    exec nginx -c "$folder/nginx.conf" ;;
  apache2)
    modules=/usr/lib/apache2/modules
    cat > apache2.conf << CONF
ServerName weir
Listen $host:$port
PidFile $folder/apache2.pid
DefaultRuntimeDir $folder
ErrorLog $folder/error.log
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
MaxKeepAliveRequests 0
EnableSendfile on
DocumentRoot $folder/files
<Directory $folder/files>
  Require all granted
</Directory>
CONF
    exec apache2 -X -f "$folder/apache2.conf" ;;
  haproxy)
    behind_nginx
    cat > haproxy.cfg << CONF
defaults
  mode http
  timeout connect 60s
  timeout client 60s
  timeout server 60s
frontend front
  bind $host:$port
  default_backend back
backend back
  server nginx 127.0.0.1:$back
CONF
    exec haproxy -db -f haproxy.cfg ;;
  varnish)
    behind_nginx
    exec varnishd -F -n "$folder/varnish" -a "$host:$port" -b "127.0.0.1:$back" -j none -s default,16m ;;
esac
