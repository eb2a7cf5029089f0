-- Which defects were never seen before the last day?
--
-- By their fingerprints: the same defect on a later recording has the same.
-- plot: findings
WITH seen AS (
    SELECT
        fingerprint, min(day) AS first_day, count(*) AS findings,
        any_value(code) AS code, any_value(name) AS name, any_value(severity) AS severity,
        any_value(provider) AS provider, any_value(model) AS model,
        any_value(message) AS example, any_value(tape || '#' || exchange) AS seen_in
    FROM findings
    GROUP BY fingerprint
)
SELECT severity, code, name, provider, model, findings, seen_in, example
FROM seen
WHERE first_day = (SELECT max(day) FROM exchanges)
ORDER BY severity_rank(severity), findings DESC, code, seen_in
