"""The web server in front of all applications: Apache, with PHP's workers behind it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.yields.packages import file
from bench.yields.place import ADDRESS, CALLER, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from bench.yields.place import Place

MODULES = (
    "mpm_event authn_core authz_core alias autoindex cgid dir env headers mime negotiation proxy "
    "proxy_fcgi proxy_http rewrite setenvif"
)
EXTENSIONS = (
    "mysqlnd pdo xml apcu calendar ctype dom exif fileinfo gd iconv intl mbstring mysqli pdo_mysql "
    "pdo_sqlite phar posix simplexml sqlite3 tokenizer xmlreader xmlwriter"
)
# A small private server has as many.
PHP_WORKERS = 3
LOG = "access.log"
# Runs a Python application in its own process, behind Apache.
WSGI_SERVER = """
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
make_server(sys.argv[1], int(sys.argv[2]), application, Server).serve_forever()
"""
CONFIGURATION = """\
ServerRoot "{folder}"
DefaultRuntimeDir "{folder}"
PidFile "{folder}/apache.pid"
Listen {address}:{port}
ServerName {address}:{port}
UseCanonicalName Off
{modules}
TypesConfig "{types}"
AddDefaultCharset off
Timeout 60
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 5
# Debian's defaults: an idle connection takes no thread.
StartServers 2
MaxRequestWorkers 150
MaxConnectionsPerChild 0
ScriptSock "{folder}/cgi"
ErrorLog "{folder}/error.log"
LogFormat "%{{begin:usec}}t\\t%>s\\t%r" yield
# Its own questions to itself, by which it wakes workers up, are no requests.
CustomLog "{folder}/{log}" yield "expr=%{{REQUEST_METHOD}} != 'OPTIONS'"
<Directory "/">
  AllowOverride None
  Options FollowSymLinks
  Require all granted
</Directory>
{site}
"""


def serve(place: Place, port: int, site: str) -> None:
    folder = file("usr/lib/apache2/modules")
    modules = (f'LoadModule {name}_module "{folder}/mod_{name}.so"' for name in MODULES.split())
    text = CONFIGURATION.format(
        folder=place.folder,
        address=ADDRESS,
        port=port,
        modules="\n".join(modules),
        types=file("etc/mime.types"),
        log=LOG,
        site=site,
    )
    place.path(LOG).unlink(missing_ok=True)
    configuration = place.write("apache.conf", text)
    place.hand_over()
    apache = file("usr/sbin/apache2")
    place.start([apache, "-f", configuration, "-D", "FOREGROUND"], port=port)


def serve_wsgi(place: Place, port: int, python: Path, application: str, home: Path) -> None:
    """Serve an application with its own server, run by the caller, behind Apache.

    `application` is Python code that defines it. `sys.argv[3]` is its `home`.
    """
    own = free_port()
    script = place.write("serve.py", application + WSGI_SERVER)
    place.start([python, script, ADDRESS, str(own), home], port=own, **CALLER)
    serve(place, port, f'ProxyPreserveHost On\nProxyPass "/" "http://{ADDRESS}:{own}/"')


def php(place: Place) -> list[str | Path]:
    return [file("usr/bin/php[0-9]*"), "-c", _settings(place)]


def serve_php(place: Place, workers: int = PHP_WORKERS) -> str:
    """Start PHP's workers. Return the configuration that makes Apache use them."""
    port = free_port()
    text = (
        f"[global]\nerror_log = {place.folder}/fpm.log\ndaemonize = no\n"
        f"[www]\nlisten = {ADDRESS}:{port}\npm = static\npm.max_children = {workers}\n"
        "clear_env = no\ncatch_workers_output = yes\n"
    )
    configuration = place.write("fpm.conf", text)
    place.hand_over()
    words: list[str | Path] = [
        file("usr/sbin/php-fpm[0-9]*"),
        "-F",
        "-y",
        configuration,
        "-c",
        _settings(place),
    ]
    place.start(words, port=port)
    return (
        "DirectoryIndex index.php index.html\n"
        f'<FilesMatch "\\.php$">\nSetHandler "proxy:fcgi://{ADDRESS}:{port}"\n</FilesMatch>\n'
        "SetEnvIf Request_URI .* proxy-fcgi-pathinfo=unescape\n"
        f'<Proxy "fcgi://{ADDRESS}:{port}">\nProxySet enablereuse=off\n</Proxy>'
    )


def _settings(place: Place) -> Path:
    folder = file("usr/lib/php/20*")
    present = [name for name in EXTENSIONS.split() if (folder / f"{name}.so").is_file()]
    lines = [f"extension_dir={folder}", f"zend_extension={folder}/opcache.so"]
    lines += [f"extension={folder}/{name}.so" for name in present]
    lines += ["memory_limit=256M", "date.timezone=UTC", "opcache.revalidate_freq=60"]
    lines += [f"sys_temp_dir={place.folder}", f"session.save_path={place.folder}"]
    lines += ["error_reporting=E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING", "log_errors=On"]
    return place.write("php.ini", "\n".join(lines) + os.linesep)
