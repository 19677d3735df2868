-- A page is more than five links away from the first page.
-- severity: notice
-- fix: Link to it from a page that is nearer to the first one.
SELECT url, NULL AS target, linked_from(depth || ' links', referrer) AS detail
FROM page
WHERE indexable AND depth > 5
ORDER BY depth DESC, url
