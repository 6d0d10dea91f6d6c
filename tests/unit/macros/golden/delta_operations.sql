describe history `shop`.`orders__next`
