-- A page links to a URL that has moved permanently.
-- severity: warning
-- fix: Link to the final page.
-- needs: links
WITH pair AS (
  SELECT DISTINCT link.source, link.target
  FROM link JOIN page ON link.target = page.id
  WHERE link.kind IN ('a', 'area') AND page.status IN (301, 308)
)
SELECT source.url, target.url AS target, 'leads to ' || chain.final AS detail
FROM pair
JOIN page AS source ON pair.source = source.id
JOIN page AS target ON pair.target = target.id
JOIN chain ON chain.start = target.url
WHERE NOT chain.loops
-- First one page for each target.
ORDER BY row_number() OVER (PARTITION BY pair.target ORDER BY source.url), target
