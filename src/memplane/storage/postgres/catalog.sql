-- Spaces and their numbers; and the directory, whose ids may be longer than a key of an index.

-- name: tenants
SELECT name FROM tenant t WHERE EXISTS (SELECT 1 FROM space s WHERE s.tenant = t.number) ORDER BY name

-- name: owners
SELECT s.owner FROM space s JOIN tenant t ON t.number = s.tenant
WHERE t.name = :tenant AND s.owner > :after ORDER BY s.owner LIMIT :limit

-- name: place
SELECT s.tenant, s.number FROM space s JOIN tenant t ON t.number = s.tenant WHERE t.name = :tenant AND s.owner = :owner

-- name: add_tenant
INSERT INTO tenant (name) VALUES (:tenant) ON CONFLICT (name) DO NOTHING

-- name: add_space
INSERT INTO space (tenant, owner) SELECT number, :owner FROM tenant WHERE name = :tenant
ON CONFLICT (tenant, owner) DO NOTHING

-- name: note_place
INSERT INTO place (tenant, sort, id, owner, at, noted) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, sort, md5(id), owner) DO UPDATE SET noted = greatest(place.noted, excluded.noted)

-- name: forget_place
DELETE FROM place
WHERE tenant = :tenant AND sort = :sort AND md5(id) = md5(:id) AND id = :id AND owner = :owner AND noted <= :before

-- name: drop_place
DELETE FROM place WHERE tenant = ?1 AND sort = ?2 AND md5(id) = md5(?3) AND id = ?3 AND owner = ?4

-- name: owners_of
SELECT owner FROM place WHERE tenant = :tenant AND sort = :sort AND md5(id) = md5(:id) AND id = :id ORDER BY owner

-- name: alone
SELECT pg_advisory_xact_lock(:number)
