-- Whose fault are the errors and warnings of each provider?
--
-- An exchange counts once for each party that its findings blame; `unclear`: the tape does not prove
-- whose fault it is.
-- plot: exchanges
SELECT
    provider,
    coalesce(blame, 'unclear') AS blame,
    count(DISTINCT (tape, exchange)) AS exchanges,
    count(DISTINCT (tape, exchange)) FILTER (severity = 'error') AS with_errors,
    count(DISTINCT (tape, exchange)) FILTER (confidence = 'proven') AS proven,
    list_sort(list_distinct(list(code))) AS codes
FROM findings
WHERE severity <> 'info'
GROUP BY ALL
ORDER BY exchanges DESC, provider, blame
