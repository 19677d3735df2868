-- A page uses an image, a video or a sound that does not exist or fails.
-- severity: error
-- fix: Correct the URL, or restore the file.
-- needs: links
SELECT DISTINCT source.url, target.url AS target, target.error AS detail
FROM link
JOIN page AS source ON link.source = source.id
JOIN page AS target ON link.target = target.id
WHERE link.kind IN ('img', 'source', 'media', 'icon') AND target.dead
ORDER BY target, source.url
