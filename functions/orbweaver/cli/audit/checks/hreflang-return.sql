-- The other language version of a page does not name this page in return.
-- severity: warning
-- fix: Add the hreflang link to the other page, too.
-- needs: links
WITH pair AS (SELECT DISTINCT source, target FROM link WHERE kind = 'hreflang')
SELECT source.url, target.url AS target, NULL AS detail
FROM pair
JOIN page AS source ON pair.source = source.id
JOIN page AS target ON pair.target = target.id
WHERE pair.source <> pair.target AND target.readable
  -- Rows beyond the limit of a page are unknown.
  AND NOT contains(coalesce(target.cut, ''), 'link')
  AND NOT EXISTS (FROM pair AS back WHERE back.source = pair.target AND back.target = pair.source)
ORDER BY source.url, target
