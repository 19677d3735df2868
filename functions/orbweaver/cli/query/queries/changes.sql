-- What has become new, different or gone: yesterday and today
SELECT crawl, change, url, found_at
FROM changes
WHERE dt >= CAST(CAST(current_date - INTERVAL '1' DAY AS date) AS varchar)
  AND change <> 'unchanged'
ORDER BY crawl, change, url
LIMIT 1000
