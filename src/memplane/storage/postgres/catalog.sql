-- Which spaces there are, and their numbers.

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
