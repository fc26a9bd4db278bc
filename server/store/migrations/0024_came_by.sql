-- Which secret a peer has come by: token, invite or operator. Those of before count as operators'.
ALTER TABLE peers ADD COLUMN came_by TEXT NOT NULL DEFAULT 'operator';
