"""Interpret HTTP responses, and choose a request's condition, proxy and cookies.

This room does no I/O: `adapters.web` sends the requests.

    response_verdict  decides whether a response is read, followed, retried or final
    block_page        detects pages that block crawlers
    conditional_get   requests pages only if they changed
    proxy_config      sources of proxies: options, secret, environment
    proxy_pool        selects a proxy
    cookies           accepts and sends cookies
    cookies_file      reads cookies that a browser exported
    login_form        fills in login forms, and checks pages for a login
"""
