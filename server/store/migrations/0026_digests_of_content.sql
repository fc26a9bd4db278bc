-- A digest covers the content of what it is of, a packet's too, and not that it is there alone: all
-- is counted anew.
UPDATE meta SET value = '0' WHERE name = 'digest_cursor';
