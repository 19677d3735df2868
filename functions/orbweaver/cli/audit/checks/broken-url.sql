-- A URL does not exist, and a page or a sitemap names it.
-- severity: error
-- fix: Correct or remove the link on the page that is named first, or restore the URL.
-- without: links
SELECT coalesce(referrer, url) AS url, url AS target,
       coalesce(CAST(status AS VARCHAR), 'unknown host name') AS detail
FROM page
WHERE broken
ORDER BY target
