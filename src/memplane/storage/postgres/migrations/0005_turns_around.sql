-- The turns before and after one in its conversation, without looking at all that were said at the same time.

DROP INDEX turn_by_conversation;
CREATE INDEX turn_by_conversation ON turn (tenant, space, conversation, at, n) WHERE conversation IS NOT NULL;
