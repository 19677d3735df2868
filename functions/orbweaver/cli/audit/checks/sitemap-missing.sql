-- No sitemap lists this page.
-- severity: notice
-- fix: Add it to the sitemap, or mark it with noindex.
-- needs: links, sitemaps, complete
SELECT url, NULL AS target, linked_from(NULL, referrer) AS detail
FROM page
WHERE indexable AND host_of(url) IN (SELECT host_of(url) FROM sitemap_entry)
  AND url NOT IN (SELECT url FROM sitemap_entry)
ORDER BY url
