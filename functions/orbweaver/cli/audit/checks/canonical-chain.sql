-- The canonical page names a third page as canonical.
-- severity: warning
-- fix: Name the last page of the chain in rel=canonical.
SELECT page.url, page.canonical AS target, 'its canonical URL is ' || target.canonical AS detail
FROM page JOIN page AS target ON page.canonical = target.url
WHERE page.canonical <> page.url AND target.canonical <> target.url
ORDER BY page.url
