-- Hosts: what failed there, what was slowest, and how much came: the last 30 days
SELECT regexp_extract(url, '^[a-z]+://([^/?#]+)', 1) AS host,
       count(*) AS pages,
       sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS failed,
       max(latency_ms) AS slowest_ms,
       max_by(url, latency_ms) AS slowest,
       sum(bytes) AS bytes
FROM pages
WHERE dt >= CAST(CAST(current_date - INTERVAL '30' DAY AS date) AS varchar)
GROUP BY regexp_extract(url, '^[a-z]+://([^/?#]+)', 1)
ORDER BY failed DESC, pages DESC, host
LIMIT 50
