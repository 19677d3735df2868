-- Several redirects in a row lead to a page.
-- severity: warning
-- fix: Let the first redirect lead to the final page.
SELECT start AS url, final AS target, hops || ' redirects: ' || array_to_string(path, ' → ') AS detail
FROM chain
WHERE hops > 1 AND NOT loops
  AND NOT EXISTS (SELECT 1 FROM page WHERE page.leads_to = chain.start)
ORDER BY hops DESC, start
