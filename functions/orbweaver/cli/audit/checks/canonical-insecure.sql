-- The canonical URL of a page on https is on http.
-- severity: warning
-- fix: Name the https URL in rel=canonical.
SELECT url, canonical AS target, NULL AS detail
FROM page
WHERE starts_with(url, 'https://') AND starts_with(canonical, 'http://')
ORDER BY url
