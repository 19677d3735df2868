-- How the pages of each crawl ended, and why: the last 30 days
SELECT crawl, outcome, reason,
       count(*) AS pages,
       sum(bytes) AS bytes,
       CAST(round(avg(latency_ms)) AS bigint) AS latency_ms
FROM pages
WHERE dt >= CAST(CAST(current_date - INTERVAL '30' DAY AS date) AS varchar)
GROUP BY crawl, outcome, reason
ORDER BY crawl, pages DESC, outcome, reason
