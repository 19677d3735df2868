-- The HTML of a page has more than 1 MB.
-- severity: notice
-- fix: Divide the page, or load parts of it later.
SELECT url, NULL AS target, bytes || ' bytes' AS detail
FROM page
WHERE outcome = 'fetched' AND charset IS NOT NULL AND bytes > 1000000
ORDER BY bytes DESC, url
