"""Judgement of answers, and what a request carries: conditions, proxies, cookies.

Decides by values alone; requests are sent by `adapters.web`.

    response_verdict  read, lead elsewhere, retry, or end
    block_page        pages that keep crawlers out
    conditional_get   asking only for what changed
    proxy_pool        which proxy asks
    cookies           which are taken, which are sent
"""
