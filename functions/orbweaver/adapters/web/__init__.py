"""HTTP over aiohttp: checked addresses, bounded answers, failures returned as values.

client          one request
address_guard   checks of dialled addresses
reach           reachability check of a server
pool            reuse of connections
pooled_request  requests on pooled connections
wire            limits on received bytes
framing         repair of heads before parsing
headers         request and answer headers
body            body reading and its limits
large_bodies    limit on concurrent large bodies
decompression   bounded decoding of content codings
deadline        one timer for all requests
timing          latency metrics
proxy_client    requests through proxies
tls             certificate authorities
errors          mapping of exceptions to reasons
"""
