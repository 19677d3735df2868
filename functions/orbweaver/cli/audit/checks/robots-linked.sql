-- Pages link to a URL that robots.txt forbids.
-- severity: notice
-- fix: Allow the URL in robots.txt, or remove the links.
-- needs: links
SELECT target.url, NULL AS target,
       'pages with this link: ' || count(DISTINCT source.url) || ', like ' || min(source.url) AS detail
FROM link
JOIN page AS source ON link.source = source.id
JOIN page AS target ON link.target = target.id
WHERE link.kind IN ('a', 'area') AND target.reason = 'robots'
GROUP BY target.url
ORDER BY count(DISTINCT source.url) DESC, target.url
