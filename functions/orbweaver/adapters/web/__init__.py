"""HTTP client on aiohttp that checks addresses, limits sizes and returns failures as values.

client          one request
address_guard   checks of addresses before connecting
reach           reachability check of a server
pool            reuse of connections
pooled_request  requests on pooled connections
wire            limits on received bytes
framing         repair of response heads before parsing
headers         request and response headers
body            body reading and its limits
large_bodies    limit on concurrent large bodies
decompression   bounded decoding of content codings
deadline        one timer for all requests
timing          latency metrics
socks           handshake with SOCKS5 proxies
proxy_client    requests through proxies
proxy_sources   lists of proxies
tls             certificate authorities, TLS contexts
errors          mapping of exceptions to reasons
"""
