-- The canonical URL of a page does not exist or fails.
-- severity: error
-- fix: Name an existing page in rel=canonical.
SELECT page.url, page.canonical AS target, target.error AS detail
FROM page JOIN page AS target ON page.canonical = target.url
WHERE target.dead
ORDER BY page.url
