-- What did the last change of the rules change?
--
-- Compares the findings of tapes that were scanned with the rules before and with these.
-- plot: new
WITH now AS (
    SELECT code, name, severity, tape, exchange, fingerprint
    FROM findings WHERE NOT across AND tape IN (SELECT tape FROM compared)
),
past AS (
    SELECT code, name, severity, tape, exchange, fingerprint
    FROM findings_before WHERE NOT across
),
matched AS (
    SELECT
        coalesce(n.code, p.code) AS code,
        coalesce(n.name, p.name) AS name,
        n.code IS NOT NULL AS is_now,
        p.code IS NOT NULL AS was_before,
        n.severity AS severity,
        p.severity AS severity_before
    FROM now AS n
    FULL JOIN past AS p
        ON n.tape = p.tape AND n.exchange = p.exchange AND n.code = p.code
        AND n.fingerprint = p.fingerprint
)
SELECT
    code,
    any_value(name) AS name,
    count(*) FILTER (is_now AND NOT was_before) AS new,
    count(*) FILTER (was_before AND NOT is_now) AS gone,
    count(*) FILTER (is_now AND was_before AND severity <> severity_before) AS other_severity,
    count(*) FILTER (is_now AND was_before AND severity = severity_before) AS same
FROM matched
GROUP BY code
ORDER BY new + gone + other_severity DESC, code
