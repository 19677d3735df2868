-- A redirect ends at a URL that does not exist or fails.
-- severity: error
-- fix: Let it lead to an existing page, or answer 404 or 410.
SELECT chain.start AS url, chain.final AS target, page.error AS detail
FROM chain JOIN page ON chain.final = page.url
WHERE page.dead AND page.reason <> 'redirect_limit' AND NOT chain.loops
ORDER BY target, chain.start
