-- An old URL does not lead to its new URL in one redirect.
-- severity: error
-- fix: Let the old URL redirect to the new one.
-- needs: redirect map
SELECT map.old AS url, map.new AS target,
       CASE WHEN page.leads_to IS NULL THEN coalesce(page.error, 'it does not redirect')
            WHEN chain.loops THEN 'a loop: ' || array_to_string(chain.path, ' → ')
            WHEN chain.final = map.new THEN chain.hops || ' redirects: ' || array_to_string(chain.path, ' → ')
            ELSE 'leads to ' || page.leads_to END AS detail
FROM redirect_map AS map
JOIN page ON map.old = page.url
LEFT JOIN chain ON chain.start = page.url
WHERE NOT page.ours AND page.leads_to IS DISTINCT FROM map.new
ORDER BY map.old
