-- An hreflang link leads to a URL that redirects, does not exist or fails.
-- severity: error
-- fix: Link to the final page of that language.
-- needs: links
SELECT DISTINCT source.url, target.url AS target,
       coalesce('leads to ' || target.leads_to, target.error, target.reason) AS detail
FROM link
JOIN page AS source ON link.source = source.id
JOIN page AS target ON link.target = target.id
WHERE link.kind = 'hreflang' AND (target.dead OR target.outcome = 'redirected')
ORDER BY source.url, target
