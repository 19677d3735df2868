-- The canonical URL of a page is on another host.
-- severity: warning
-- fix: Name a page of this host in rel=canonical, unless the page is a copy.
SELECT url, canonical AS target, NULL AS detail
FROM page
WHERE canonical IS NOT NULL AND host_of(url) <> host_of(canonical)
ORDER BY url
