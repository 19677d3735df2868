-- Tables of one audit: page, hop, chain. The variables runs and judged are lists.
CREATE OR REPLACE TEMP TABLE page AS
WITH newest AS (
  SELECT *
  FROM pages
  WHERE crawl IN (SELECT unnest(getvariable('runs')))
  QUALIFY row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC) = 1
)
SELECT CAST(row_number() OVER (ORDER BY url) AS INTEGER) AS id,
       crawl, url, outcome, reason, status, depth, referrer, bytes, latency_ms, title, description,
       language, h1, charset, sha256, cut, error, last_modified, fetched_at,
       -- --canonical skips such pages and keeps the URL in error.
       CASE WHEN reason = 'canonical' THEN error ELSE canonical END AS canonical,
       NOT list_contains(getvariable('judged'), reason) AS ours,
       reason = 'noindex' AS noindex,
       reason IN ('http_client_error', 'dns_unknown') AS broken,
       reason IN ('http_client_error', 'dns_unknown', 'http_server_error', 'http_status', 'tls',
                  'protocol', 'encoding', 'redirect_invalid', 'redirect_limit') AS dead,
       -- The content of these pages is known. Others may get their content from scripts.
       NOT ours AND outcome IN ('fetched', 'unchanged') AND charset IS NOT NULL AND reason <> 'soft_404'
         AND needs_rendering IS DISTINCT FROM true
         AND NOT contains(coalesce(cut, ''), 'unread=') AS readable,
       -- Search engines list these pages under their own URL.
       readable AND NOT noindex AND (canonical IS NULL OR canonical = url) AS indexable,
       needs_rendering IS NOT DISTINCT FROM true AS unrendered,
       -- The error of a redirect is its target. A truncated one is unknown.
       CASE WHEN outcome = 'redirected' AND NOT contains(coalesce(cut, ''), 'error=')
            THEN error END AS leads_to
FROM newest;

CREATE OR REPLACE TEMP TABLE chain AS
WITH RECURSIVE hop AS (
  SELECT url, leads_to FROM page WHERE leads_to IS NOT NULL
), walk AS (
  SELECT url AS start, leads_to AS final, 1 AS hops, [url, leads_to] AS path, url = leads_to AS loops
  FROM hop
  UNION ALL
  SELECT walk.start, hop.leads_to, walk.hops + 1, list_append(walk.path, hop.leads_to),
         list_contains(walk.path, hop.leads_to)
  FROM walk JOIN hop ON walk.final = hop.url
  WHERE NOT walk.loops AND walk.hops < 20
)
-- The longest walk from each URL: its final URL redirects nowhere, or the walk is a loop.
SELECT start, arg_max(final, hops) AS final, max(hops) AS hops, arg_max(path, hops) AS path,
       bool_or(loops) AS loops
FROM walk
GROUP BY start
