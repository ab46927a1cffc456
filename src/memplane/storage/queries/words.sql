-- Turns that are not in the word index yet.

-- name: tail_texts
SELECT n, text FROM turn WHERE n > :indexed AND n < :beyond ORDER BY n LIMIT :limit

-- name: tail_size
SELECT count(*) FROM turn WHERE n > :indexed

-- name: corpus_size
SELECT coalesce((SELECT max(n) / {turns_per_entry} FROM turn), 0) + coalesce((SELECT max(n) FROM memory), 0)

-- name: not_indexed
SELECT n, text FROM turn WHERE n > :after AND n <= :until ORDER BY n DESC LIMIT :limit

-- name: tail
SELECT {turn_columns}
FROM turn t JOIN ledger l ON l.seq = {entry_of:t} WHERE t.n > :indexed AND {where} ORDER BY t.n DESC LIMIT :limit
