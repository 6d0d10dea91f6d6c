select DBT_INTERNAL_DEST.* from `shop`.`orders` as DBT_INTERNAL_DEST
  left semi join `shop`.`new_rows` as DBT_INTERNAL_SOURCE on DBT_INTERNAL_SOURCE.`id` <=> DBT_INTERNAL_DEST.`id` and (DBT_INTERNAL_DEST.`id` between -5 and 7 or DBT_INTERNAL_DEST.`id` is null)
