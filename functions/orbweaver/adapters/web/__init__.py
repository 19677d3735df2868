"""The web over aiohttp: guarded, bounded, and never raising for what a server does.

client          one request
address_guard   which sockets are made
reach           whether a server can be reached
pool            which connections are used again
pooled_request  requests that know their connection
wire            what comes in, counted
framing         heads put right before they are parsed
headers         of requests and answers
body            how far a body is read
large_bodies    few large ones at once
decompression   codings undone, bounded
deadline        one timer for all requests
timing          how long answers take
proxy_client    by way of proxies
tls             certificate authorities
errors          exceptions to reasons
"""
