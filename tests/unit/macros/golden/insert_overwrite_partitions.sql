select
    DBT_INTERNAL_DEST.`id` as `id`,
    DBT_INTERNAL_DEST.`day` as `day`,
    DBT_INTERNAL_DEST.`it's ``odd``` as `it's ``odd```,
    cast(null as double) as `added` from `shop`.`orders` as DBT_INTERNAL_DEST
  left anti join `shop`.`new_rows` as DBT_INTERNAL_SOURCE on DBT_INTERNAL_SOURCE.`day` <=> DBT_INTERNAL_DEST.`day` and DBT_INTERNAL_SOURCE.`it's ``odd``` <=> DBT_INTERNAL_DEST.`it's ``odd```
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`day` as `day`,
    DBT_INTERNAL_SOURCE.`it's ``odd``` as `it's ``odd```,
    DBT_INTERNAL_SOURCE.`added` as `added` from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
