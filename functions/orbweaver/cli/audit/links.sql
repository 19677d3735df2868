-- Tables of one audit: run_link, link, sitemap_entry, linked, left_out. They need the table links.
CREATE OR REPLACE TEMP VIEW run_link AS
SELECT links.*, page.id
FROM links JOIN page ON links.url = page.url AND links.crawl = page.crawl;

CREATE OR REPLACE TEMP TABLE link AS
SELECT run_link.id AS source, page.id AS target,
       TRY_CAST(run_link.kind AS link_kind) AS kind,
       -- The text is needed only in messages about these targets.
       CASE WHEN page.dead THEN run_link.text END AS text
FROM run_link JOIN page ON run_link.target_url = page.url
WHERE run_link.kind <> 'sitemap';

CREATE OR REPLACE TEMP TABLE sitemap_entry AS
SELECT DISTINCT id AS source, url AS sitemap, target_url AS url
FROM run_link
WHERE kind = 'sitemap';

-- Pages to which other pages link or redirect.
CREATE OR REPLACE TEMP TABLE linked AS
SELECT DISTINCT target
FROM link
WHERE source <> target AND kind IN ('a', 'area', 'next', 'prev', 'refresh', 'iframe', 'hreflang')
UNION
SELECT target.id FROM page JOIN page AS target ON page.leads_to = target.url;

-- URLs that the crawl found and did not request.
CREATE OR REPLACE TEMP VIEW left_out AS
SELECT target_url AS url
FROM run_link
WHERE (decision IN ('waiting', 'budget', 'dollars', 'closed', 'depth', 'cut')
       OR (decision = 'followed' AND kind NOT IN ('redirect', 'refresh')))
  AND target_url NOT IN (SELECT url FROM page)
