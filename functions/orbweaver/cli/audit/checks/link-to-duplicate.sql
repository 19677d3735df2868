-- A page links to a URL that names another page as canonical.
-- severity: notice
-- fix: Link to the canonical URL.
-- needs: links
SELECT DISTINCT source.url, target.url AS target, 'its canonical URL is ' || target.canonical AS detail
FROM link
JOIN page AS source ON link.source = source.id
JOIN page AS target ON link.target = target.id
WHERE link.kind IN ('a', 'area') AND target.canonical <> target.url AND source.url <> target.url
  AND (target.readable OR target.reason = 'canonical')
ORDER BY target, source.url
