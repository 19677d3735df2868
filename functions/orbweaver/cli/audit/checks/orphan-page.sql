-- A sitemap lists a page without links from other pages.
-- severity: warning
-- fix: Link to it from a page, or remove the page.
-- needs: links, sitemaps, complete
SELECT page.url, NULL AS target,
       -- A page that the crawl could not read can contain a link.
       'listed in ' || min(entry.sitemap) || ', pages that could not be read: '
         || (SELECT count(*) FROM page WHERE ours OR unrendered) AS detail
FROM page JOIN sitemap_entry AS entry ON entry.url = page.url
WHERE page.indexable AND page.id NOT IN (SELECT target FROM linked)
  -- Seeds need no link.
  AND NOT (page.depth = 0 AND page.referrer IS NULL)
GROUP BY page.url
ORDER BY page.url
