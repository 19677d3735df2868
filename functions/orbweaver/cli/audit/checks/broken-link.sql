-- A page links to a URL that does not exist.
-- severity: error
-- fix: Correct or remove the link, or restore the target.
-- needs: links
WITH pair AS (
  SELECT link.source, link.target, min(link.text) AS text
  FROM link
  JOIN page AS source ON link.source = source.id
  JOIN page ON link.target = page.id
  WHERE page.broken
    AND (link.kind IN ('a', 'area', 'iframe', 'next', 'prev', 'amphtml', 'alternate')
         -- A refresh that redirects is a broken redirect.
         OR (link.kind = 'refresh' AND source.leads_to IS NULL))
  GROUP BY ALL
)
SELECT source.url, target.url AS target,
       coalesce(CAST(target.status AS VARCHAR), 'unknown host name')
         || ', pages with this link: ' || count(*) OVER (PARTITION BY pair.target)
         || CASE WHEN pair.text <> '' THEN ', link text: ' || pair.text ELSE '' END AS detail
FROM pair
JOIN page AS source ON pair.source = source.id
JOIN page AS target ON pair.target = target.id
-- First one page for each target.
ORDER BY row_number() OVER (PARTITION BY pair.target ORDER BY source.url), target
